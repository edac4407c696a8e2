package contend

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/bench/servers"
)

// Service has the servers of one implementation.
type Service struct {
	Kind  locks.Kind
	Addrs []string        // where its clients connect
	Redis []string        // where servers are asked what they have done
	Other *servers.Server // the one it uses instead of Redis
}

// reading is what servers have used and executed since they started.
type reading struct {
	at             int64
	cpu            time.Duration
	sent, commands uint64
	kept           uint64 // connections alive, by a command
	own            uint64 // of commands, by reading
}

// read asks all servers at once. Its time is the middle between the request and the
// last reply.
func (s Service) read(ctx context.Context) (reading, error) {
	begin := Now()
	r, err := s.ask(ctx)
	r.at = (begin + Now()) / 2
	return r, err
}

func (s Service) ask(ctx context.Context) (r reading, err error) {
	if s.Other != nil {
		if r.cpu, err = servers.CPU(s.Other.PID); err != nil {
			return r, err
		}
		r.sent, err = s.Other.Requests(ctx)
		return r, err
	}
	infos, errs := make([]string, len(s.Redis)), make([]error, len(s.Redis))
	var wg sync.WaitGroup
	for i, addr := range s.Redis {
		wg.Go(func() { infos[i], errs[i] = resp.Ask(addr, "INFO", "all") })
	}
	wg.Wait()
	for i, info := range infos {
		if errs[i] == nil {
			errs[i] = r.add(info, s.Kind.Sends)
		}
		if errs[i] != nil {
			return r, fmt.Errorf("INFO of %s: %w", s.Redis[i], errs[i])
		}
	}
	return r, nil
}

// neverInScripts has the commands that scripts may not call: if a server executed one,
// a client sent it.
var neverInScripts = []string{
	"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "script", "function",
	"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe",
	"multi", "exec", "discard", "watch", "unwatch", "hello", "auth", "client", "reset", "quit",
	"select", // scripts may call it, but nobody's do
}

// keepAlive is the command that clients send on idle connections. It is counted
// separately, because it depends on time and not on locks.
const keepAlive = "ping"

// add adds the figures of one server. Servers also count commands that scripts call;
// those that clients sent are recognized by name.
func (r *reading) add(info string, sends []string) error {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			command, _, _ = strings.Cut(command, "|") // a subcommand
			if command != keepAlive && !slices.Contains(neverInScripts, command) && !slices.Contains(sends, command) {
				continue
			}
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, err := strconv.ParseUint(calls, 10, 64)
			if err != nil {
				return err
			}
			if command == keepAlive {
				r.kept += n
			} else {
				r.sent += n
			}
			continue
		}
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			r.cpu += time.Duration(seconds * float64(time.Second))
		case "total_commands_processed":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return err
			}
			r.commands += n
		default:
			continue
		}
		found++
	}
	if found != 3 {
		return fmt.Errorf("%d of 3 figures found", found)
	}
	r.own++ // a later reading counts this INFO, which is not among what clients send
	return nil
}

// since returns the use between two readings, scaled to the window: the servers answer
// a little before and after its ends.
func (r reading) since(before reading, window time.Duration) Use {
	share := float64(window) / float64(max(r.at-before.at, 1))
	return Use{
		ServerCPU: time.Duration(float64(r.cpu-before.cpu) * share),
		Sent:      float64(r.sent-before.sent) * share,
		KeptAlive: float64(r.kept-before.kept) * share,
		Commands:  max(0, float64(r.commands)-float64(before.commands)-float64(before.own)) * share,
	}
}
