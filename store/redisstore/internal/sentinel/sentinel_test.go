package sentinel

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// TestNewest checks which master the sentinels' replies name.
func TestNewest(t *testing.T) {
	dated := func(master string, epoch uint64) Reply {
		return Reply{Sentinel: "s", Master: master, Epoch: epoch, dated: true}
	}
	undated := func(master string) Reply { return Reply{Sentinel: "s", Master: master} }
	silent := Reply{Sentinel: "s", Err: errors.New("down")}
	for name, c := range map[string]struct {
		said  []Reply
		known uint64
		want  string // empty: no master
		epoch uint64
	}{
		"all agree":            {[]Reply{dated("a", 3), dated("a", 3), dated("a", 3)}, 0, "a", 3},
		"one sentinel is left": {[]Reply{silent, silent, dated("a", 3)}, 3, "a", 3},
		"no sentinel answers":  {[]Reply{silent, silent}, 3, "", 3},
		"one knows of a failover before the others": {[]Reply{dated("a", 3), dated("a", 3), dated("b", 4)}, 3, "b", 4},
		"one is cut off": {[]Reply{dated("a", 3), dated("b", 4), dated("b", 4)}, 4, "b", 4},
		"only the sentinel that is cut off answers": {[]Reply{dated("a", 3), silent, silent}, 4, "", 4},
		"half of the sentinels are no majority":     {[]Reply{dated("a", 3), silent}, 4, "", 4},
		"set up anew":                               {[]Reply{dated("c", 0), dated("c", 0), silent}, 4, "c", 0},
		"the only one, set up anew":                 {[]Reply{dated("c", 0)}, 4, "c", 0},
		"a majority names one master":               {[]Reply{dated("a", 3), dated("b", 3), dated("b", 3)}, 3, "b a", 3},
		"the first master that was named":           {[]Reply{dated("a", 3), dated("b", 3)}, 3, "a b", 3},
		"epochs are not shown":                      {[]Reply{undated("a"), undated("b"), undated("b")}, 0, "b a", 0},
		"only one shows epochs":                     {[]Reply{undated("a"), undated("a"), dated("b", 1)}, 0, "b", 1},
		"the one that shows epochs is down":         {[]Reply{undated("a"), silent}, 4, "a", 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, epoch, err := newest(c.said, c.known, len(c.said)/2+1)
			if all, _, err := newest(c.said, c.known, len(c.said)); name == "set up anew" && err == nil {
				t.Errorf("%q, want an error: not all sentinels have answered", all)
			}
			if !slices.Equal(got, strings.Fields(c.want)) || epoch != c.epoch || (err == nil) != (c.want != "") {
				t.Errorf("%q, epoch %d, %v; want %q, epoch %d", got, epoch, err, c.want, c.epoch)
			}
		})
	}
}

// Only the answers of a sentinel are read as such.
func TestSentinelAnswers(t *testing.T) {
	text := func(s string) resp.Value { return resp.Value{Kind: '$', Text: []byte(s)} }
	list := func(words ...string) (v resp.Value) {
		v.Kind = '*'
		for _, w := range words {
			v.List = append(v.List, text(w))
		}
		return v
	}
	if at, err := masterNamed(list("::1", "6379"), "m"); at != "[::1]:6379" || err != nil {
		t.Errorf("the master is %s, %v, want [::1]:6379", at, err)
	}
	for _, v := range []resp.Value{{Kind: '*', Null: true}, {Kind: '$', Null: true}, {Kind: '-', Text: []byte("ERR unknown command")},
		list("a"), list("", "1"), list("a", "0"), list("a", "x"), list("a", "65536"), {Kind: ':'}} {
		if at, err := masterNamed(v, "m"); err == nil || at != "" {
			t.Errorf("%v names the master %q, %v, want an error", v, at, err)
		}
	}
	if e, ok := epochOf(list("name", "m", "config-epoch", "7", "x")); e != 7 || !ok {
		t.Errorf("epoch %d, %v, want 7", e, ok)
	}
	for _, v := range []resp.Value{list("config-epoch"), list("x", "config-epoch"), {Kind: '-', Text: []byte("NOPERM")}} {
		if e, ok := epochOf(v); ok {
			t.Errorf("%v has epoch %d, want none", v, e)
		}
	}
}
