// Package differential holds an engine that keeps locks to the rule: it feeds
// random commands to the engine, to internal/rule and, where the engine is a
// node of a quorum, to internal/proof/modelnode, and demands the same answers of all,
// and the same state left behind after every single command.
//
// It is test equipment. An engine's own tests bring a Subject, which is how the
// engine is spoken to, and call Check. A failure is shrunk to a short list of
// steps and printed as a numbered trace.
//
// What rule and model say differently, because a record is one thing and the
// keys of a node are several, is put in words in byRule.
package differential
