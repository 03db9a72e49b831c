package verb

import (
	"context"
	"errors"
	"time"

	"github.com/bowsprit/bowsprit/internal/verb/revision"
)

// futureWait is how long a read waits for a revision that has not happened yet before it tells the client so.
const futureWait = 3 * time.Second

// catchUp makes the view fit for a read with the given resourceVersion parameter, and returns a revision that the view
// has reached:
//
//	""   every write that was acknowledged before the read began is seen
//	"0"  whatever the view has
//	N    at least N
func (r *Reader) catchUp(ctx context.Context, resourceVersion string) (int64, error) {
	switch resourceVersion {
	case "":
		return r.view.Fresh(ctx)
	case "0":
		return r.view.Revision(), nil
	}
	want, err := revision.ParseVersion(resourceVersion)
	if err != nil {
		return 0, err
	}
	return r.reach(ctx, want)
}

// reach waits until the view is at revision want, or answers that it does not exist.
func (r *Reader) reach(ctx context.Context, want int64) (int64, error) {
	if have := r.view.Revision(); have >= want {
		return have, nil
	}
	// A quick look at the log tells a revision that is on its way from one that does not exist.
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
		return 0, revision.TooLarge(want, r.view.Revision())
	}
	return 0, err
}
