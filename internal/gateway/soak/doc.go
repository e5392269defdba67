// Package soak has many callers keep a gateway busy with calls of every kind, and looks for answers that the contract does
// not name, memory that grows and goroutines that stay.
package soak
