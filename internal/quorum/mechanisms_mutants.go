//go:build mutants

package quorum

var (
	confirmToken = true
	confirmOwned = true
	buryDoubtful = true
	overHalf     = true
	cleanUpLost  = true
	doubtUnknown = true
	heal         = true
	placeInTime  = true
	buryRepeated = true
	giveWay      = true
	freeOnMost   = true
	agreeOnSlots = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be stepping a machine while one is changed.
var Mechanisms = map[string]*bool{
	"confirm-token": &confirmToken,
	"confirm-owned": &confirmOwned,
	"bury-doubtful": &buryDoubtful,
	"over-half":     &overHalf,
	"clean-up-lost": &cleanUpLost,
	"doubt-unknown": &doubtUnknown,
	"heal":          &heal,
	"place-in-time": &placeInTime,
	"bury-repeated": &buryRepeated,
	"give-way":      &giveWay,
	"free-on-most":  &freeOnMost,
	"agree-slots":   &agreeOnSlots,
}
