// Command mutants removes each marked guard in turn and checks that a test fails without it.
//
//	go run ./cmd/mutants                         every guard
//	go run ./cmd/mutants -only 'cursor|token'    some of them
//	go run ./cmd/mutants -list                   the guards, without running anything
//
// A guard is one if or one statement that a promise rests on (P1 to P8, see docs/guarantees.md). A
// directive on the line before it names the guard, the promise and the reason:
//
//	-- guard:cursor-compare P1 a tick is granted from the cursor only     in a Lua script
//	//guard:lease-deadline P4 the holder stops before others may begin    in Go, no space after //
//
// In Go an if is never taken and another statement is never reached, found by the syntax tree. In
// Lua the line is removed, and of a block all lines down to the end in its column. The go tool
// reads the changed text in place of the file (-overlay), so the tree itself is never changed.
//
// The table guards.txt names one or two tests for each guard. A guard is caught when one of them
// fails by its own assertions: a compile error or a test that hangs counts as a failure of this
// program. First the named tests run on the unchanged tree and must pass.
//
// To see which tests notice a guard, play other tests under its mutant:
//
//	go run ./cmd/mutants -only '^cursor-compare$' -tests './scheduler/schedtest TestScenarios'
//
// The exit code is 1 when a guard is not caught, and 2 when marks and table do not fit each other.
package main
