//go:build mutants

package waitq

var (
	unwantedReleased = true
	placeKept        = true
	placeGivenUp     = true
	returnedGivenUp  = true
	oneAsker         = true
	endedPassedOver  = true
)

// Mechanisms are the switches of this build that a simulator of nodes sees, by name.
// All are on at first. No queue may be stepped while one is changed.
var Mechanisms = map[string]*bool{
	"returned-given-up": &returnedGivenUp,
}

// QueueMechanisms decide which waiter is next, and what happens between two
// goroutines of one process.
var QueueMechanisms = map[string]*bool{
	"unwanted-released": &unwantedReleased,
	"place-kept":        &placeKept,
	"place-given-up":    &placeGivenUp,
	"one-asker":         &oneAsker,
	"ended-passed-over": &endedPassedOver,
}
