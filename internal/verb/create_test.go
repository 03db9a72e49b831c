package verb

import (
	"strings"
	"testing"
)

func TestGeneratedName(t *testing.T) {
	if got := generatedName(nil, "x-", "abcde"); got != "x-abcde" {
		t.Errorf("got %q", got)
	}
	if got := generatedName(nil, strings.Repeat("a", 70), "abcde"); len(got) != 63 ||
		!strings.HasSuffix(got, "aabcde") {
		t.Errorf("a long prefix gives %q (%d)", got, len(got))
	}
}
