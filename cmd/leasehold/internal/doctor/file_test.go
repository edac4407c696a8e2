package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store/filestore"
)

var fileCases = []struct {
	e        filestore.Examination
	severity Severity
	code     Code
	says     string
}{
	{filestore.Examination{Network: "NFS"}, Error, FileOnNetwork, "NFS"},
	{filestore.Examination{Exposed: errors.New("others can write it")}, Error, FileExposed, "others can write it"},
	{filestore.Examination{Exposed: errors.New("others can write it"), Shared: true}, Info, FileShared, "shared=true"},
	{filestore.Examination{Unusable: errors.New("the disk is full")}, Error, FileUnusable, "the disk is full"},
	{filestore.Examination{Free: 1 << 20, FreeKnown: true}, Warning, FileDiskLow, "1 MiB"},
	{filestore.Examination{Missing: true}, Info, FileMissing, "no such folder"},
	{filestore.Examination{Missing: true, Unusable: errors.New("denied")}, Error, FileUnusable, "denied"},
}

func TestFileFindings(t *testing.T) {
	for _, c := range fileCases {
		c.e.Path = "/x"
		got := File(c.e)
		if len(got) != 1 || got[0].Severity != c.severity || got[0].Code != c.code || got[0].Node != "/x" || !strings.Contains(got[0].Message, c.says) || got[0].Advice == "" {
			t.Errorf("%+v: %+v, want one %v %s with %q", c.e, got, c.severity, c.code, c.says)
		}
	}
	if got := File(filestore.Examination{Path: "/x", FreeKnown: true, Free: 1 << 40}); got == nil || len(got) != 0 {
		t.Errorf("a sound folder: %+v, want an empty list", got)
	}
}
