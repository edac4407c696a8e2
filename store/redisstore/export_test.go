package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// StepWall makes the store see another time of day than the machine's.
func StepWall(s *store.Store, by time.Duration) {
	engineOf(s).Wall = func() time.Time { return time.Now().Add(by) }
}

// Classify exposes how an error reply of the server is classified.
func Classify(reply string) (store.Outcome, error) {
	return script.Classify(resp.ErrorOf(resp.Value{Kind: '-', Text: []byte(reply)}))
}

// ParseURLs exposes the reading of URLs: the nodes and the settings.
func ParseURLs(url string, o Options) (hosts []string, _ Options, _ error) {
	addrs, settings, err := config.Parse(url, o.settings())
	for _, a := range addrs {
		hosts = append(hosts, a.Host)
	}
	return hosts, Options(settings), err
}

// DecodeValue exposes the reading of a key's value.
var DecodeValue = script.DecodeValue

// Settle exposes the check of options.
func Settle(o Options) (Options, error) {
	settings, err := o.settings().WithDefaults()
	return Options(settings), err
}

// MaxBundle exposes how many leases one command renews.
const MaxBundle = script.MaxBundle

// TriesAfter sets how long a connection may be silent before it is tested while there are
// waiters.
func TriesAfter(s *store.Store, d time.Duration) { engineOf(s).PushTestAfter = d }

// ReadsAfter sets how long no goroutine reads when nothing is in flight.
func ReadsAfter(s *store.Store, d time.Duration) { engineOf(s).InlineFor.Store(int64(d)) }

func engineOf(s *store.Store) *engine { return s.Engine().(*engine) }
