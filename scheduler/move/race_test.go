//go:build race

package move

// stride is every how many calls a move is cut: with the race detector each takes five times as long.
const stride = 9
