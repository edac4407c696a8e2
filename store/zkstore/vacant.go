package zkstore

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// vacant remembers locks that this store has just released, and in which nobody else had a
// place. If the next place has the next number, no place was made in between, so the new one is
// the only one. It has the lock, and nothing has to be listed: a lock and unlock then takes two
// requests instead of three.
type vacant struct {
	mu    sync.Mutex
	locks map[string]vacancy
}

// vacancy is what was known of a lock when the place of its only owner was deleted.
type vacancy struct {
	number int32 // of that place
	zxid   int64 // of the transaction that deleted it
	// version is that of the lock's node while it had no data. With another version, leases
	// may have been broken since.
	version int32
	at      clock.Instant
}

// vacantFor is how long a vacancy is of use. The more the servers have done since, the less
// certain is the proof, see vacancy.precedes. If it fails, the queue is listed after the place is
// made, which costs one more round trip than asking for both at once.
const vacantFor = 100 * time.Millisecond

// add notes that a lock is vacant.
func (v *vacant) add(name string, of vacancy) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.locks == nil || len(v.locks) >= mostLately {
		v.locks = make(map[string]vacancy)
	}
	v.locks[name] = of
}

// take forgets and returns the vacancy of a lock, if it is likely to be of use: zxid is the
// last one that the servers have told.
func (v *vacant) take(name string, zxid int64, now clock.Instant) *vacancy {
	v.mu.Lock()
	defer v.mu.Unlock()
	of, ok := v.locks[name]
	if !ok {
		return nil
	}
	delete(v.locks, name)
	const underWay = 64 // transactions that are executed before the next place is made
	if now.Sub(of.at) > vacantFor || zxid-of.zxid > int64(of.number)-underWay {
		return nil
	}
	return &of
}

// precedes reports whether a place with that number, made by the transaction zxid, is the only
// one of the lock.
//
// The servers count the nodes that are made below the lock's node. So if the numbers of two places
// follow each other, no place was made in between. The count begins again at 0 if the lock's node
// is removed and made anew. It then takes more transactions than number to reach that again, since
// no client makes two places in one transaction. Each transaction of one leader has the next zxid,
// so fewer zxids in between show that the count has not begun again.
func (v vacancy) precedes(number int32, zxid int64) bool {
	return number > 0 && v.number == number-1 && v.zxid < zxid && zxid-v.zxid <= int64(v.number) && v.zxid>>32 == zxid>>32
}
