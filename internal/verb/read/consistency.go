package read

import (
	"context"
	"errors"
	"time"
)

// futureWait limits how long a read waits for a revision that has not happened yet.
const futureWait = 3 * time.Second

// catchUp prepares the view for a read with the given resourceVersion parameter, and returns a revision that the view
// has reached:
//
//	""   every write acknowledged before the read began is visible
//	"0"  the current state of the view
//	N    at least N
func (r *Reader) catchUp(ctx context.Context, resourceVersion string) (int64, error) {
	switch resourceVersion {
	case "":
		return r.view.Fresh(ctx)
	case "0":
		return r.view.Revision(), nil
	}
	want, err := parseVersion(resourceVersion)
	if err != nil {
		return 0, err
	}
	return r.reach(ctx, want)
}

// reach waits until the view is at revision want. It returns an error if that revision does not exist.
func (r *Reader) reach(ctx context.Context, want int64) (int64, error) {
	if have := r.view.Revision(); have >= want {
		return have, nil
	}
	// Fresh catches up with the log; after that, only a revision that does not exist yet needs the wait.
	if _, err := r.view.Fresh(ctx); err != nil {
		return 0, err
	}
	wait, cancel := context.WithTimeout(ctx, futureWait)
	defer cancel()
	err := r.view.WaitFor(wait, want)
	switch {
	case err == nil:
		return r.view.Revision(), nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return 0, tooLarge(want, r.view.Revision())
	}
	return 0, err
}
