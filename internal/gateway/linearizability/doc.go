// Package linearizability shows that a gateway keeps the promise of the conditional calls: clients hammer a few names
// over gRPC, everything they ask and are told is written down, and a checker looks for one order of events that explains
// all of it. It is used by tests alone.
//
// A [History] is what happened to one (workspace, name). [Check] holds it against the model in model.go, in which every
// call takes effect at one instant between its invocation and its answer, and against the rules for resource versions.
// [Run] makes histories. What a history cannot say, an outcome that nobody learned, the checker takes both ways.
//
// The seed of a run fixes what its clients ask, not how their calls interleave. To look at a violation again, check the
// history that was written down with it: the report of a violation says how.
package linearizability
