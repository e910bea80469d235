//go:build !race

package move

// stride is every how many calls a move is cut.
const stride = 1
