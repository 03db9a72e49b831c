package control

import (
	"errors"
	"testing"
)

// TestRunningMessage checks Kubernetes' texts of the progress of a migration.
func TestRunningMessage(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"The migration is running":                               running(0, 0, nil),
		"The migration is running, 3/5 objects not yet migrated": running(2, 5, nil),
		"The migration is running, 5 objects verified migrated":  running(5, 5, nil),
		"The migration is running; transient error: busy":        running(0, 0, errors.New("busy")),
		"The migration is running, 5/5 objects not yet migrated" +
			"; transient error: busy": running(0, 5, errors.New("busy")),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
