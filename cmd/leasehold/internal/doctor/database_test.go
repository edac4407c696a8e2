package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

var databaseCases = []struct {
	e        sqlstore.Examination
	severity Severity
	code     Code
	says     string
}{
	{sqlstore.Examination{Unusable: errors.New("no route")}, Error, DatabaseUnusable, "no route"},
	{sqlstore.Examination{Known: true, Server: sqlstore.Server{Why: "fsync is off"}}, Warning, DatabaseNotDurable, "fsync is off"},
	{sqlstore.Examination{Known: true, Polled: "a pooler"}, Warning, DatabasePooled, "poll"},
}

func TestDatabaseFindings(t *testing.T) {
	for _, c := range databaseCases {
		got := Database(c.e)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v: %+v, want one %v %s with %q", c.e, got, c.severity, c.code, c.says)
		}
	}
	sound := sqlstore.Examination{Known: true}
	if got := Database(sound); got == nil || len(got) != 0 {
		t.Errorf("a sound database: %+v, want an empty list", got)
	}
}
