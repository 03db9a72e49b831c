package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Life is the Stages of a kind.
type Life []*Stage

// Candidate is a Stage that an object may go through next, with its weight in the random choice.
type Candidate struct {
	*Stage
	Weight int64
}

// heaviest is the most that a Stage weighs, so that sums of weights are numbers.
const heaviest = 1 << 40

// Candidates returns the Stages that match an object, as the input of the random choice. Stages with an unreadable
// weight count only if there are no others. Stages of weight 0 count only if no other has more; their Weight is then 1.
//
// The error is about Stages that could not be evaluated. They do not match, and the returned candidates are valid.
func (l Life) Candidates(ctx context.Context, o *Object) ([]Candidate, error) {
	var weighed, unclear []Candidate
	var errs []error
	total := int64(0)
	for _, s := range l {
		ok, err := s.Matches(ctx, o)
		if err == nil && ok {
			w, readable, failure := s.weight.get(ctx, o)
			switch {
			case failure != nil:
				err = failure
			case readable:
				w = max(0, min(w, heaviest))
				weighed, total = append(weighed, Candidate{s, w}), total+w
			default:
				unclear = append(unclear, Candidate{s, 1})
			}
		}
		if err != nil {
			errs = append(errs, &Failure{s, err})
		}
	}
	if len(weighed) == 0 {
		return unclear, errors.Join(errs...)
	}
	out := weighed[:0]
	for _, c := range weighed {
		if total == 0 {
			c.Weight = 1
		}
		if c.Weight > 0 {
			out = append(out, c)
		}
	}
	return out, errors.Join(errs...)
}

// Failure is the error of a Stage for an object.
type Failure struct {
	Stage *Stage
	Err   error
}

// Error names the Stage.
func (f *Failure) Error() string { return fmt.Sprintf("stage %s: %v", f.Stage.Name, f.Err) }

// Unwrap returns the underlying error.
func (f *Failure) Unwrap() error { return f.Err }

// Choose returns the next Stage of an object, or nil for none. random returns a number below n. The error is that of
// Candidates.
func (l Life) Choose(ctx context.Context, o *Object, random func(n int64) int64) (*Stage, error) {
	candidates, err := l.Candidates(ctx, o)
	if len(candidates) <= 1 {
		for _, c := range candidates {
			return c.Stage, err
		}
		return nil, err
	}
	total := int64(0)
	for _, c := range candidates {
		total += c.Weight
	}
	at := random(total)
	for _, c := range candidates {
		if at -= c.Weight; at < 0 {
			return c.Stage, err
		}
	}
	return candidates[len(candidates)-1].Stage, err
}

// Matches reports whether the selector matches an object.
func (s *Stage) Matches(ctx context.Context, o *Object) (bool, error) {
	switch {
	case s.selector == nil,
		s.selector.labels != nil && !s.selector.labels.Matches(labels.Set(o.Labels)),
		s.selector.annotations != nil && !s.selector.annotations.Matches(labels.Set(o.Annotations)):
		return false, nil
	}
	for i := range s.selector.expressions {
		if ok, err := s.selector.expressions[i].matches(ctx, o); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// Weight returns the weight for an object; false if the object's value is not a number.
func (s *Stage) Weight(ctx context.Context, o *Object) (int64, bool, error) {
	return s.weight.get(ctx, o)
}

// Delays returns the bounds of the random delay before the Stage is played on an object; to is exclusive. Equal bounds
// mean a fixed delay, and false means no delay.
func (s *Stage) Delays(ctx context.Context, o *Object) (from, to time.Duration, ok bool, err error) {
	if from, ok, err = s.delay.get(ctx, o); err != nil || !ok {
		return 0, 0, false, err
	}
	from = within(from)
	to, ok, err = s.jitter.get(ctx, o)
	to = within(to)
	switch {
	case err != nil:
		return 0, 0, false, err
	case !ok:
		return from, from, true, nil
	case to <= from: // the smaller one counts
		return to, to, true, nil
	}
	return from, to, true, nil
}

// longest is the longest delay: differences of two are durations.
const longest = 100 * 365 * 24 * time.Hour

func within(d time.Duration) time.Duration { return max(-longest, min(d, longest)) }

// Delay returns how long the object waits for the Stage; random returns a number below n.
func (s *Stage) Delay(ctx context.Context, o *Object, random func(n int64) int64) (time.Duration, error) {
	from, to, _, err := s.Delays(ctx, o)
	if err == nil && to > from {
		from += time.Duration(random(int64(to - from)))
	}
	return from, err
}
