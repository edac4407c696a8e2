package script

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// How many words the inspect script says about a free lock, and about one that is held.
const freeWords, heldWords = 6, 8

// Look reads the reply of the inspect script.
func (r Reply) Look() (said store.NodeOutcome, token fence.Token, queue []store.Place) {
	if r.Outcome != store.Granted {
		return store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}, 0, nil
	}
	switch v := r.Value.List; {
	case len(v) == freeWords:
		return QuarantinedOr(v[2], v[3], store.NodeOutcome{Outcome: store.Absent}), 0, placesOf(v[4].List)
	case len(v) == heldWords && v[1].Kind == '$' && v[2].Kind == ':':
		if record := recordOf(v[1], v[2]); record != nil {
			said, token := record.first()
			return quarantinedIfFree(said, v[4], v[5]), token, placesOf(v[6].List)
		}
		if token, ok := v[3].Number(); ok {
			said := takenBy(v[1], v[2])
			return said, ownToken(said.Holder, token), placesOf(v[6].List)
		}
	}
	return store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.Value)}, 0, nil
}

// ownToken returns the token of the holder's grant, at which the counter is. Other clients
// have no tokens.
func ownToken(h store.Holder, counter uint64) fence.Token {
	if h.Foreign {
		return 0
	}
	return fence.Token(counter)
}

// placesOf reads the queue as the inspect script reports it: values and PTTLs.
func placesOf(said []resp.Value) []store.Place {
	var queue []store.Place
	for v := range slices.Chunk(said, 2) {
		if len(v) < 2 || v[0].Kind != '$' || len(v[0].Text) == 0 || v[1].Kind != ':' || v[1].Num < 0 {
			continue
		}
		queue = append(queue, store.Place{Holder: decodePlace(string(v[0].Text)), ExpiresIn: time.Duration(max(0, min(v[1].Num, mostMillis))) * time.Millisecond})
	}
	return queue
}

// Listed is what a node said about one held lock.
type Listed struct {
	Outcome store.NodeOutcome
	Token   fence.Token
	Record  *Record // of a lock that several can hold
}

// Listed reads the answer to ListCommand about n locks. It returns the held ones by index,
// and the outcome of all others.
func (r Reply) Listed(n int) (map[int]Listed, store.NodeOutcome) {
	if r.Outcome != store.Granted {
		return nil, store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}
	}
	refused := store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.Value)}
	v := r.Value.List
	if len(v) < 2 {
		return nil, refused
	}
	others := QuarantinedOr(v[0], v[1], store.NodeOutcome{Outcome: store.Absent})
	all := map[int]Listed{}
	for v := range slices.Chunk(v[2:], 4) {
		if len(v) < 4 || v[0].Kind != ':' || v[0].Num < 1 || v[0].Num > int64(n) || v[1].Kind != '$' || v[2].Kind != ':' {
			return nil, refused
		}
		if record := recordOf(v[1], v[2]); record != nil {
			if said, token := record.first(); said.Outcome == store.Taken {
				all[int(v[0].Num)-1] = Listed{said, token, record}
			}
			continue
		}
		counter, _ := v[3].Number()
		if said := takenBy(v[1], v[2]); said.Outcome == store.Taken {
			all[int(v[0].Num)-1] = Listed{said, ownToken(said.Holder, counter), nil}
		}
	}
	return all, others
}
