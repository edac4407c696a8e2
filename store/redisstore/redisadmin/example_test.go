package redisadmin_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Clients can't tell new servers from servers that have lost their leases. The operator
// declares once that the servers are new.
func ExampleBootstrap() {
	declared, err := redisadmin.Bootstrap(context.Background(), "redis://10.0.0.1,10.0.0.2,10.0.0.3", nil, false)
	if err != nil {
		log.Print(err)
		return
	}
	for _, d := range declared {
		fmt.Println(d.Node, "grants locks from now on")
	}
}

// An examination collects facts about every server; the program decides what they mean.
func ExampleExamine() {
	e, err := redisadmin.Examine(context.Background(), "redis://10.0.0.1,10.0.0.2,10.0.0.3", nil, redisadmin.Scope{TTL: 30 * time.Second})
	if err != nil {
		log.Print(err)
		return
	}
	for _, n := range e.Nodes {
		switch {
		case n.Err != nil:
			fmt.Println(n.Node, "is not usable:", n.Err)
		case n.Trip > e.NodeTimeout/2:
			fmt.Println(n.Node, "is slow:", n.Trip)
		}
	}
}

// A rule lets a user inspect locks but not acquire them.
func ExampleACL() {
	rule, err := redisadmin.ACL{User: "locker", Prefix: "jobs/", Uses: redisadmin.ToShow}.Line()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rule)
	// Output: ACL SETUSER locker reset on >PASSWORD ~jobs/* ~{jobs/*}:* ~leasehold:node +evalsha +eval +get +lrange +hgetall +zrange +pttl +time +info +hscan
}
