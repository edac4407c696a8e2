// Package differential compares an engine that keeps locks with the rule. It sends
// random commands to the engine, to internal/rule and, if the engine is a node of a
// quorum, to internal/proof/modelnode. All must give the same answers, and be in the
// same state after every single command.
//
// It is for tests. The tests of an engine implement Subject, which drives the engine,
// and call Check. A failure is shrunk to a short list of steps and printed as a
// numbered trace.
//
// Rule and model differ in a few points, because a record is one thing and the keys of
// a node are several. byRule describes them.
package differential
