package read

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Bounds of a survey.
const (
	// maxRounds is the number of searches for objects written since the last one, before the hold, and fewObjects the
	// number of objects that a hold may check.
	maxRounds  = 5
	fewObjects = 500
	// surveyPage is the number of objects that are converted in one call.
	surveyPage = 100
	// maxProblems is the number of objects that the errors name.
	maxProblems = 3
)

// Survey reads the objects of a proof. It belongs to one goroutine.
type Survey struct {
	*catalog.Proof
	reader   *Reader
	revision int64 // all objects up to this revision were read
	read     int   // number of checked objects
	all      int   // number of objects at that revision
	held     bool  // the writes of the objects are held: the survey must not wait for other requests
	problems field.ErrorList
}

// Survey returns a survey that has read nothing yet.
func (r *Reader) Survey(p *catalog.Proof) *Survey { return &Survey{Proof: p, reader: r} }

// Run checks the objects, as long as the proof allows. An exact proof checks again the objects that were written
// meanwhile, until they are few. Between two objects it gives way to other requests. The errors are the reasons against
// the write.
func (s *Survey) Run(ctx context.Context) (field.ErrorList, error) {
	if s.Check == nil {
		return s.verdict(), nil
	}
	if s.Within == 0 {
		return s.runExact(ctx)
	}
	if _, err := s.reader.view.Fresh(ctx); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	if _, err := s.round(within); err != nil && (ctx.Err() != nil || within.Err() == nil) {
		return nil, err
	}
	return s.verdict(), nil
}

func (s *Survey) runExact(ctx context.Context) (field.ErrorList, error) {
	for range maxRounds {
		if _, err := s.reader.view.Fresh(ctx); err != nil {
			return nil, err
		}
		checked, err := s.round(ctx)
		if err != nil {
			return nil, err
		}
		if errs := s.verdict(); len(errs) > 0 || checked < fewObjects {
			return errs, nil
		}
	}
	return nil, nil
}

// Finish completes an exact proof: it checks the objects that were written since Run, while their writes are held.
func (s *Survey) Finish(ctx context.Context) (field.ErrorList, error) {
	if !s.Exact() {
		return nil, nil
	}
	s.held = true
	defer func() { s.held = false }()
	if _, err := s.reader.view.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := s.round(ctx); err != nil {
		return nil, err
	}
	return s.verdict(), nil
}

// Warning returns the warning for the client.
func (s *Survey) Warning() string {
	if s.Report == nil {
		return ""
	}
	return s.Report(s.read, s.all)
}

func (s *Survey) verdict() field.ErrorList {
	if len(s.problems) > 0 || s.Verdict == nil {
		return s.problems
	}
	return s.Verdict(s.read, s.all)
}

// round checks the objects that were written since the last round, and returns their number.
func (s *Survey) round(ctx context.Context) (checked int, err error) {
	r := s.reader.catalog.Snapshot().Resource(s.Contents.Group, s.Contents.Resource)
	prefix := s.Contents.Group + "/" + s.Contents.Resource // of objects without a definition
	if r != nil {
		prefix = r.Prefix
	}
	snapshot := s.reader.view.Collection(prefix).Snapshot()
	s.all = snapshot.Len()
	page := make([]*watchcache.Entry, 0, surveyPage)
	flush := func() bool {
		err = s.checkPage(ctx, r, page)
		checked += len(page)
		page = page[:0]
		return err == nil && len(s.problems) < maxProblems
	}
	more := true
	snapshot.Scan("", "", func(e *watchcache.Entry) bool {
		if e.Revision > s.revision {
			if page = append(page, e); len(page) == surveyPage {
				more = flush()
			}
		}
		return more
	})
	if more && flush() {
		s.revision = snapshot.Revision
	}
	if s.Within == 0 {
		s.read = s.all
	}
	return checked, err
}

// checkPage checks objects of r, which is nil without a definition. Its error is ctx's.
func (s *Survey) checkPage(ctx context.Context, r *catalog.Resource, page []*watchcache.Entry) error {
	page = s.readable(page)
	if r == nil || len(s.Versions) == 0 {
		return s.checkIn(ctx, target{}, page, true)
	}
	for i, name := range s.Versions {
		v := r.Version(name)
		if v == nil {
			continue // another update has removed it, and this one will fail
		}
		if err := s.checkIn(ctx, target{r, v}, page, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// target is a version of a resource; zero means the stored version.
type target struct {
	resource *catalog.Resource
	version  *catalog.Version
}

// checkIn checks objects in one version. count is true if the objects count as read.
func (s *Survey) checkIn(ctx context.Context, in target, page []*watchcache.Entry, count bool) error {
	shown, name := page, ""
	if in.version != nil {
		name = in.version.Name
		if all, err := s.reader.convert.Entries(ctx, in.resource, in.version, page); err == nil {
			shown = all // otherwise each object has its own error
		}
	}
	for i, e := range shown {
		if err := ctx.Err(); err != nil {
			return err
		}
		obj, err := s.decode(ctx, in, e)
		if err == nil {
			if count {
				s.read++
			}
			if err = s.Check(name, obj); err != nil {
				err = fmt.Errorf("stored in %s: %w", page[i].APIVersion, err)
			}
		} else if s.Within > 0 {
			err = nil // it counts as not read
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.refuse(fmt.Sprintf("object %s, %s", e.Key(), err))
		}
		if len(s.problems) == maxProblems {
			return nil
		}
		if !s.held {
			request.Yield(ctx)
		}
	}
	return nil
}

// readable returns the readable objects of a page. An exact proof refuses all others.
func (s *Survey) readable(page []*watchcache.Entry) []*watchcache.Entry {
	out := page[:0:0]
	for _, e := range page {
		switch {
		case e.Unreadable() == nil:
			out = append(out, e)
		case s.Within == 0 && len(s.problems) < maxProblems:
			s.refuse(fmt.Sprintf("object %s cannot be read from the store, and not be checked: delete it", e.Key()))
		}
	}
	return out
}

// decode returns an object in a version.
func (s *Survey) decode(ctx context.Context, in target, e *watchcache.Entry) (object.Object, error) {
	if in.version == nil {
		return convert.DecodeStored(e.Peek())
	}
	e, err := s.reader.convert.Entry(ctx, in.resource, in.version, e)
	if err != nil {
		return nil, err
	}
	if e.IsConverted() {
		return convert.DecodeStored(e.JSON())
	}
	return convert.PresentStored(in.resource, in.version, e.Peek())
}

func (s *Survey) refuse(reason string) {
	s.problems = append(s.problems, field.Invalid(s.Path, field.OmitValueType{}, reason))
}
