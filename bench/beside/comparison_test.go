package beside

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// modules are the repositories that this module requires: where docs/comparison.md finds
// their files, the module that has them, and the module's folder in the repository.
var modules = []struct{ at, module, folder string }{
	{"https://github.com/go-redsync/redsync/blob/", "github.com/go-redsync/redsync/v4", ""},
	{"https://github.com/bsm/redislock/blob/", "github.com/bsm/redislock", ""},
	{"https://github.com/redis/rueidis/blob/", "github.com/redis/rueidis", ""},
	{"https://github.com/etcd-io/etcd/blob/", "go.etcd.io/etcd/client/v3", "client/v3/"},
}

// Each claim of docs/comparison.md about a Go library quotes a line of the version that this
// module requires. So the test fails if an update of the library changes the line.
func TestComparisonQuotes(t *testing.T) {
	text, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		out, err := exec.Command("go", "list", "-m", "-json", m.module).Output()
		if err != nil {
			t.Fatalf("%s: %v", m.module, err)
		}
		var is struct{ Version, Dir string }
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatal(err)
		}
		at := regexp.QuoteMeta(m.at+is.Version+"/"+m.folder) + `([\w./-]+)#L(\d+) "([^"\n]+)"`
		quotes := regexp.MustCompile(`\]\(`+at+`\)`).FindAllStringSubmatch(string(text), -1)
		if len(quotes) < 5 {
			t.Errorf("%d quotes of %s %s, want at least 5: was the module updated without docs/comparison.md?", len(quotes), m.module, is.Version)
		}
		for _, q := range quotes {
			source, err := os.ReadFile(filepath.Join(is.Dir, q[1]))
			if err != nil {
				t.Error(err)
				continue
			}
			lines := strings.Split(string(source), "\n")
			if n, _ := strconv.Atoi(q[2]); n < 1 || n > len(lines) || !strings.Contains(lines[n-1], q[3]) {
				t.Errorf("%s line %s lacks %q", q[1], q[2], q[3])
			}
		}
	}
}
