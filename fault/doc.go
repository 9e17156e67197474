// Package fault is the one shape of error that reaches a user: a kind (which
// becomes the gRPC code), a stable reason in brackets, and a message that says
// what, where and what to do.
//
// Every package returns these for mistakes of the caller and for named limits;
// plain Go errors stand for what should not happen and reach the client as
// INTERNAL. The package depends on nothing, so that all may use it. It never
// logs, never holds a stack and never ends the process.
package fault
