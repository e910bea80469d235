// Package locks measures Escapement's locks beside the locks of other libraries: an uncontended
// acquire and release, and a hand-over among contenders.
package locks
