package queues

import "github.com/leasehold-dev/leasehold/internal/waitq"

// Row is one search: a world, the mechanism of the queues that is switched off, and the
// property that must be found broken. With all mechanisms none is.
type Row struct {
	Name  string
	What  string
	Model Model
	Off   string
	Want  Property
	// Reach has the actions that queues must take on some path. Otherwise the row shows
	// nothing.
	Reach Actions
}

var (
	coming    = Model{Goroutines: []int{2, 1}, Rounds: 1}
	leaving   = Model{Goroutines: []int{2, 1}, Rounds: 1, Ends: 1}
	emptying  = Model{Goroutines: []int{2, 1}, Rounds: 1, Ends: 2}
	three     = Model{Goroutines: []int{3, 1}, Rounds: 1}
	rejoining = Model{Goroutines: []int{2, 2}, Rounds: 1, Rejoins: true}
	returning = Model{Goroutines: []int{2, 1}, Rounds: 1, Ends: 1, Rejoins: true}
	refusing  = Model{Goroutines: []int{2, 1}, Rounds: 1, Refusals: 1}
)

// Rows is the whole set.
func Rows() []Row {
	return []Row{
		{Name: "ask", What: "goroutines ask the store one after the other", Model: coming, Reach: Did(waitq.Try, waitq.Start, waitq.EnterYourself, waitq.Wait, waitq.Give)},
		{Name: "leave", What: "a context ends while its goroutine waits", Model: leaving, Reach: Did(waitq.GiveUp, waitq.Discard)},
		{Name: "leave-unwanted", What: "a grant that arrives when no goroutine waits is not released", Model: leaving, Off: "unwanted-released", Want: Served},
		{Name: "leave-ended", What: "a goroutine that is about to leave is given the lock", Model: leaving, Off: "ended-passed-over", Want: Wanted},
		{Name: "leave-place", What: "a place is given up with the goroutine that took it", Model: leaving, Off: "place-kept", Want: Turn},
		{Name: "leave-asker", What: "each goroutine that waits asks the store", Model: leaving, Off: "one-asker", Want: Asker},
		{Name: "empty", What: "all goroutines of a process leave", Model: emptying, Reach: Did(waitq.GiveUp, waitq.Discard)},
		{Name: "empty-place", What: "the place of a process without waiters is not given up", Model: emptying, Off: "place-given-up", Want: Unused},
		{Name: "three", What: "three goroutines of a process have the lock one after the other", Model: three, Reach: Did(waitq.Give)},
		{Name: "rejoin", What: "the next place is taken with the release", Model: rejoining, Reach: ReservedWait},
		{Name: "rejoin-leave", What: "the same, and the place may be wanted no longer", Model: returning, Reach: Did(waitq.GiveUp)},
		{Name: "rejoin-unwanted", What: "a reserved place that is not wanted is not given up", Model: returning, Off: "returned-given-up", Want: Served},
		{Name: "close", What: "the store refuses, since waiting cannot help", Model: refusing, Reach: Did(waitq.Refuse)},
	}
}
