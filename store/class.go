package store

import "fmt"

// Class is the strongest guarantee a store can give.
type Class uint8

// The classes, weakest first. Each includes the promises of the one before it.
// docs/guarantees.md says what would break them, and docs/evidence.md which tests show them.
const (
	// Efficiency allows two holders at once in rare cases: the server restarts
	// without its last writes, or a replica takes over. Use it to avoid doing
	// work twice, not to protect data.
	Efficiency Class = iota
	// CrashSafe rules out two holders at once after a crash or restart of a
	// server or a client, a loss of data or a network partition, as long as all
	// clocks run at about the same speed.
	CrashSafe
	// Consensus means that servers agree on every grant before it counts,
	// whatever their clocks do. A holder that was paused past its lease is still
	// refused only by its fencing token, as in every class.
	Consensus
)

var classNames = [...]string{"efficiency", "crash-safe", "consensus"}

// String returns the name of the class as the command line spells it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", c)
}

// ParseClass returns the class with the given name. It is the inverse of
// Class.String; any other name gives an error that matches ErrInvalid.
func ParseClass(s string) (Class, error) {
	for c, name := range classNames {
		if s == name {
			return Class(c), nil
		}
	}
	return 0, fmt.Errorf("%w: unknown class %q: choose one of efficiency, crash-safe, consensus", ErrInvalid, s)
}
