package explore

import "time"

// token is a fencing token in the least room. Without a clock floor it is the
// number itself. With one, numbers are microseconds, of which only whole ticks
// and a small rest occur: the upper bits are ticks since some ticks before the
// present, and the lower four the rest. Zero is no token.
type token uint8

const (
	restBits      = 4
	aTick         = token(1) << restBits
	microsPerTick = uint64(tick / time.Microsecond)
	epochMicros   = uint64(epoch) / uint64(time.Microsecond)
	// past is how many ticks back tokens are told apart. It is more than an
	// attempt can be old and still win.
	past        = 4
	firstMicros = epochMicros - past*microsPerTick
)

// number returns t as the production code and the nodes see it.
func (m *Model) number(t token) uint64 {
	if !m.Floor || t == 0 {
		return uint64(t)
	}
	return firstMicros + uint64(t>>restBits)*microsPerTick + uint64(t&(aTick-1))
}

// packed returns the token of a number.
func (m *Model) packed(n uint64) token {
	if m.Floor && n != 0 {
		whole, rest := (n-firstMicros)/microsPerTick, (n-firstMicros)%microsPerTick
		if n <= firstMicros || rest >= uint64(aTick) {
			panic("explore: a token that no clock gives")
		}
		n = whole<<restBits | rest
	}
	if n > 255 {
		panic("explore: a token too large for the room it has")
	}
	return token(n)
}

// older returns t as seen n ticks later, or 0 if it is long past.
func (m *Model) older(t token, n uint8) token {
	switch {
	case !m.Floor:
		return t
	case t>>restBits <= token(n):
		return 0
	}
	return t - token(n)<<restBits
}

// younger returns t as seen n ticks earlier.
func (m *Model) younger(t token, n uint8) token {
	if !m.Floor || t == 0 {
		return t
	}
	if int(t>>restBits)+int(n) >= 1<<(8-restBits) {
		panic("explore: a token too large for the room it has")
	}
	return t + token(n)<<restBits
}

// counts returns t, or 0 if t is below every node's clock. Such a counter does not matter,
// since the next token is larger anyway.
func (m *Model) counts(t token) token {
	if m.Floor && t < past<<restBits {
		return 0
	}
	return t
}
