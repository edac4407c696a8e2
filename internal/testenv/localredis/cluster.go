package localredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// slots is the number of slots in every cluster.
const slots = 16384

// Join makes one cluster of servers that were launched with Options.Cluster. The
// first masters of them become masters and share the slots evenly and in order.
// The others become replicas of the masters, in turn. Join returns when all
// servers see a working cluster.
func Join(servers []*Server, masters int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ids := make([]string, len(servers))
	for i, s := range servers {
		id, err := s.text(ctx, "CLUSTER", "MYID")
		if err != nil {
			return s.failed("join", err)
		}
		ids[i] = id
		steps := [][]string{{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)}}
		if i < masters {
			add := []string{"CLUSTER", "ADDSLOTS"} // ADDSLOTSRANGE needs Redis 7
			for slot := slots * i / masters; slot < slots*(i+1)/masters; slot++ {
				add = append(add, strconv.Itoa(slot))
			}
			steps = append(steps, add)
		}
		if i > 0 {
			steps = append(steps, servers[0].meet())
		}
		for _, step := range steps {
			if _, err := s.Do(ctx, step...); err != nil {
				return s.failed("join", fmt.Errorf("%s: %w", strings.Join(step, " "), err))
			}
		}
	}
	if err := known(ctx, servers); err != nil {
		return err
	}
	for i, s := range servers[masters:] {
		err := until(ctx, func() error { // the others may not know its role yet
			_, err := s.Do(ctx, "CLUSTER", "REPLICATE", ids[i%masters])
			return err
		})
		if err == nil {
			err = until(ctx, func() error {
				info, err := s.text(ctx, "INFO", "replication")
				if err == nil && infoField(info, "master_link_status") != "up" {
					err = errors.New("the replica does not follow its master")
				}
				return err
			})
		}
		if err != nil {
			return s.failed("join", err)
		}
	}
	for _, s := range servers { // so that masters know who can take their place
		err := until(ctx, func() error {
			all, err := s.text(ctx, "CLUSTER", "NODES")
			if err == nil && strings.Count(all, "slave") != len(servers)-masters {
				err = errors.New("the server does not know all replicas")
			}
			return err
		})
		if err != nil {
			return s.failed("join", err)
		}
	}
	return nil
}

// Joins adds the server, which was launched with Options.Cluster, to the cluster
// of members, as a master without slots. It returns when all servers know each
// other.
func (s *Server) Joins(members []*Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := s.Do(ctx, members[0].meet()...); err != nil {
		return s.failed("join", err)
	}
	return known(ctx, append(members[:len(members):len(members)], s))
}

// meet returns the command that introduces the server to another.
func (s *Server) meet() []string {
	return []string{"CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.port), strconv.Itoa(s.bus)}
}

// known waits until all servers see a cluster of exactly these servers, with all
// slots.
func known(ctx context.Context, servers []*Server) error {
	for _, s := range servers {
		err := until(ctx, func() error {
			info, err := s.text(ctx, "CLUSTER", "INFO")
			if err == nil && (infoField(info, "cluster_state") != "ok" || infoField(info, "cluster_known_nodes") != strconv.Itoa(len(servers)) || infoField(info, "cluster_slots_ok") != strconv.Itoa(slots)) {
				err = errors.New("the server does not see the whole cluster")
			}
			return err
		})
		if err != nil {
			return s.failed("join", err)
		}
	}
	return nil
}

func (s *Server) text(ctx context.Context, args ...string) (string, error) {
	v, err := s.Do(ctx, args...)
	return Text(v), err
}

// until repeats try until it succeeds, or returns its last error.
func until(ctx context.Context, try func() error) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-poll.C:
		}
	}
}
