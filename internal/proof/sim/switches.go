package sim

// Switches take mechanisms away that are not in the Go code: those of the scripts, of
// the operator of the servers, and of the machine.
type Switches struct {
	// Edit changes a script before a server runs it; nil: as it is.
	Edit func(text string) string
	// NoBootClock: the clients' clock stands still while they are suspended.
	NoBootClock bool
	// Passing: a worker hands its lease to another attempt, under the same owner.
	Passing bool
	// Hasty: an operator that says that it waits for the holder frees the lock at once.
	Hasty bool
	// Careless: an operator ends the lease of the present holder, and not the one that it was
	// shown.
	Careless bool
	// Disguised: what an operator sends passes for what a client sends.
	Disguised bool
	// Blunt: a node that releases an owner for an operator ends whatever lease the lock has then.
	Blunt bool
	// Patient: the judge does not limit how long a lock may stay free while it is wanted.
	Patient bool
	// PromisesOnly: what nodes and clients do is not compared with the steps of the proof.
	PromisesOnly bool
	// StepsOnly: promises are not judged, only the steps.
	StepsOnly bool
	// Trusting: the judge believes what the records of locks say of themselves.
	Trusting bool
}

// Shipped has every mechanism in place.
func Shipped() Switches { return Switches{} }
