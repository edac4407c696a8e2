package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
)

var azureCases = []struct {
	e        azblobstore.Examination
	severity Severity
	code     Code
	says     string
}{
	{azblobstore.Examination{Unusable: errors.New("AuthorizationFailure")}, Error, AzureUnusable, "AuthorizationFailure"},
	{azblobstore.Examination{}, Warning, AzureOther, "efficiency"},
	{azblobstore.Examination{Class: store.CrashSafe, Took: 2 * time.Second}, Warning, AzureSlow, "2s"},
}

func TestAzureFindings(t *testing.T) {
	for _, c := range azureCases {
		got := Azure(c.e, 10*time.Second)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v, want one %v %s with %q", got, c.severity, c.code, c.says)
		}
	}
	if got := Azure(azblobstore.Examination{Class: store.CrashSafe}, 10*time.Second); got == nil || len(got) != 0 {
		t.Errorf("a sound container: %+v, want an empty list", got)
	}
}
