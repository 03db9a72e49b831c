package autoscaling

import "testing"

// TestText checks that each rule names an existing function, and that each function is used.
func TestText(t *testing.T) {
	t.Parallel()
	if err := text().Verify(Kinds()); err != nil {
		t.Error(err)
	}
}
