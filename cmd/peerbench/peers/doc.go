// Package peers starts jobs that are due at each second, the way of each compared library, in the
// process that calls it. Settings follow the library's own documentation. Where another choice was
// in a library's favour, that choice is taken and the comment gives the reason.
package peers
