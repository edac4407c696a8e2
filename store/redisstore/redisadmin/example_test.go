package redisadmin_test

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

func ExampleACL() {
	rule, err := redisadmin.ACL{User: "locker", Prefix: "jobs/", Uses: redisadmin.ToShow}.Line()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rule)
	// Output: ACL SETUSER locker reset on >PASSWORD ~jobs/* ~{jobs/*}:* ~leasehold:node +evalsha +eval +get +lrange +pttl +time +info +hscan
}
