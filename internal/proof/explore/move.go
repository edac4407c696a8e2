package explore

// move is one step the world can take.
type move struct {
	kind moveKind
	slot uint8
	node uint8
	arg  uint8 // which message of several, which proposal, which peer
	// twice: the request is delivered, and stays under way all the same.
	twice bool
}

type moveKind uint8

const (
	begin          moveKind = iota // a client begins an attempt
	deliverAcquire                 // a node executes a request
	deliverAgain
	deliverConfirm
	deliverExtend
	deliverStray
	deliverRelease
	deliverBury
	deliverHeal
	deliverStrayAsk
	deliverReturn
	deliverMove
	hearMove
	hearAcquire // a client hears an answer
	hearConfirm
	hearExtend
	hearPush
	doubtAcquire // a client is notified that no answer will come
	doubtConfirm
	doubtExtend
	unsentAcquire // a client is notified that a request never left
	poll          // a client takes it that it has missed something
	tickAttempt   // a client's timer fires
	tickVote
	cancelAttempt // a client gives up
	cancelVote
	renew
	beginBeside // a holder begins another vote; see beside
	deliverBeside
	hearBeside
	tickBeside
	cancelBeside
	beginBreak // the operator breaks a lease
	deliverBreak
	release
	rejoin // a client releases, with a place for its next attempt
	claim  // it wants the lock again
	pass   // time passes
	crash
	lose
	jump
	reread
	tellBoth // the operator tells a node which list it is of
	tellNew
)
