package broken

import "testing"

func TestInside(t *testing.T) { var n int = "text"; t.Log(n) }
