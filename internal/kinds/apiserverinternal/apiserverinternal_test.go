package apiserverinternal

import "testing"

// TestText parses the texts: each rule names a function that is there, and each function is named.
func TestText(t *testing.T) {
	t.Parallel()
	if err := text().Verify(Kinds()); err != nil {
		t.Error(err)
	}
}
