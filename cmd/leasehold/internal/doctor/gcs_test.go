package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
)

var gcsCases = []struct {
	e        gcsstore.Examination
	severity Severity
	code     Code
	says     string
}{
	{gcsstore.Examination{Unusable: errors.New("forbidden")}, Error, GCSUnusable, "forbidden"},
	{gcsstore.Examination{}, Warning, GCSOther, "efficiency"},
	{gcsstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, GCSSlow, "2s"},
}

func TestGCSFindings(t *testing.T) {
	for _, c := range gcsCases {
		got := GCS(c.e, 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := GCS(gcsstore.Examination{Class: store.CrashSafe}, 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound bucket: %+v, want an empty list", got)
	}
}
