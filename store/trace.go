package store

import "regexp"

// traceparent is the form of version 00 of W3C Trace Context.
var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// TraceID returns the 32 hexadecimal digits of the trace in which the lock was asked for,
// or "" if the holder gave none.
func (h Holder) TraceID() string {
	if m := traceparent.FindStringSubmatch(h.Trace); m != nil {
		return m[1]
	}
	return ""
}

// traceOrNone returns trace if it has the form of Holder.Trace, and "" otherwise.
func traceOrNone(trace string) string {
	if traceparent.MatchString(trace) {
		return trace
	}
	return ""
}
