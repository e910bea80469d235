// Package peers starts jobs that are due at each second, the way of each library
// that is compared, in the process that calls it. Settings are those that the
// library's own documentation shows; where another choice was in its favour,
// that is taken and the comment says so.
package peers
