package store

import "fmt"

// Class says how much the locks of a store stand.
type Class uint8

// The classes, each with all that the one before it promises. What breaks a
// promise is said in docs/guarantees.md.
const (
	// Efficiency: two holders at once are rare, and possible: when the server
	// restarts without its last writes, or a replica takes over. For work that
	// had better not be done twice.
	Efficiency Class = iota
	// CrashSafe: no crash of a server or a client, restart, loss of data or cut
	// of the network makes two holders at once, as long as clocks run at about
	// the same speed.
	CrashSafe
	// Consensus: servers agree on every grant before it counts, whatever their
	// clocks do. A holder that was stopped is refused by its fencing token, as
	// everywhere.
	Consensus
)

var classNames = [...]string{"efficiency", "crash-safe", "consensus"}

// String is how the class is written on the command line.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", c)
}

// ParseClass reads what String writes.
func ParseClass(s string) (Class, error) {
	for c, name := range classNames {
		if s == name {
			return Class(c), nil
		}
	}
	return 0, fmt.Errorf("%w: there is no guarantee %q: choose one of efficiency, crash-safe, consensus", ErrInvalid, s)
}
