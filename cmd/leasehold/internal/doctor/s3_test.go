package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

var s3Cases = []struct {
	e        s3store.Examination
	severity Severity
	code     Code
	says     string
}{
	{s3store.Examination{Unusable: errors.New("AccessDenied")}, Error, S3Unusable, "AccessDenied"},
	{s3store.Examination{Class: store.CrashSafe, Racy: true}, Error, S3Racy, "two clients"},
	{s3store.Examination{}, Warning, S3NotDurable, "efficiency"},
	{s3store.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, S3Slow, "2s"},
}

func TestS3Findings(t *testing.T) {
	for _, c := range s3Cases {
		got := S3(c.e, 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := S3(s3store.Examination{Class: store.CrashSafe}, 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound server: %+v, want an empty list", got)
	}
}
