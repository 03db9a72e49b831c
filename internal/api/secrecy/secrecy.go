// Package secrecy protects the sensitive fields of a call's objects: it decides whether the caller may read them, masks
// them for others, restores them when a client writes the mask, and redacts errors and the audit log.
//
// It stands below package verb and above object/sensitive, which masks. The zero value of Secrecy is for kinds without
// sensitive fields, and for calls in process; it does nothing.
package secrecy

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	objectschema "github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

// Subresource is the subresource that a caller must be allowed to get to read sensitive fields. It is not served.
const Subresource = "sensitive"

// Secrecy holds the sensitive fields of a call's objects, and whether the caller sees them.
type Secrecy struct {
	// Fields are the sensitive fields; nil means none.
	Fields *sensitive.Fields
	// Masked is true if the caller may not read them.
	Masked bool
}

// Version is a version of a kind: catalog.Version.
type Version interface {
	// SensitiveFields returns the sensitive fields of the version's objects; nil means none.
	SensitiveFields() (*sensitive.Fields, error)
	// Schema returns the version's schema, or nil.
	Schema() (*objectschema.Schema, error)
}

// Of returns the secrecy of objects of a version. The request names the object; its verb and subresource matter only
// for the permission to list or watch. A nil authorizer allows everything.
func Of(
	ctx context.Context, v Version, a authz.Authorizer, u user.Info, info request.Info,
) (Secrecy, error) {
	fields, err := v.SensitiveFields()
	if err != nil {
		return Secrecy{}, apierrors.NewInternalError(err)
	}
	if fields == nil || a == nil {
		return Secrecy{Fields: fields}, nil
	}
	return Secrecy{Fields: fields, Masked: !mayRead(ctx, a, u, info)}, nil
}

// mayRead checks the verb get on the subresource, and for a list or a watch also that verb.
func mayRead(ctx context.Context, a authz.Authorizer, u user.Info, info request.Info) bool {
	verbs := []string{"get"}
	if info.Verb == "list" || info.Verb == "watch" {
		verbs = append(verbs, info.Verb)
	}
	info.IsResource, info.Subresource = true, Subresource
	for _, info.Verb = range verbs {
		if d, _ := a.Authorize(ctx, u, &info); d.Allowed() {
			return true
		}
	}
	return false
}

// Roles decide about the resource of a call.
type Roles interface {
	Allows(verb, subresource string) bool
}

// Narrow also masks the fields if the roles v, such as the current ones, do not let the caller read them. ask is the
// request's verb.
func (s *Secrecy) Narrow(v Roles, ask string) {
	if s.Fields != nil && !s.Masked {
		s.Masked = !v.Allows("get", Subresource) && !v.Allows(ask, Subresource)
	}
}

// Shown returns an object as the caller sees it. It shares values with obj, which is not changed.
func (s Secrecy) Shown(obj object.Object) object.Object {
	if !s.Masked {
		return obj
	}
	return s.Fields.MaskObject(obj)
}

// Part is the part of an object that a write takes from the client.
type Part struct {
	// Kind and Name are the object's, for errors.
	Kind schema.GroupKind
	Name string
	// Split is true if the kind has a status subresource, and Status if the write is to it.
	Split, Status bool
	// Applied holds the fields of a server-side apply.
	Applied bool
}

// Unmask restores the stored values where a client has sent the mask, in place; old is nil for a new object. It ignores
// parts that the endpoint does not take from the client.
func (s Secrecy) Unmask(obj, old object.Object, p Part) error {
	if s.Fields == nil {
		return nil
	}
	unmask := s.Fields.UnmaskObject
	if p.Applied {
		unmask = s.Fields.Unmask
	}
	var wrong field.ErrorList
	for _, e := range unmask(obj, old) {
		if status := e.Field == "status" || strings.HasPrefix(e.Field, "status."); !p.Split || status == p.Status {
			wrong = append(wrong, e)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if p.Name == "" {
		p.Name = object.String(object.Meta(obj), "name")
	}
	return invalid.New(p.Kind, p.Name, wrong)
}

// Redact removes sensitive values from the errors of an object of a version. It keeps the messages of rules, since
// definitions may not compute them from values.
func Redact(v Version, errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 {
		return errs
	}
	fields, err := v.SensitiveFields()
	if err != nil || fields == nil {
		return errs
	}
	texts := map[string]bool{}
	if sch, err := v.Schema(); err == nil && sch != nil {
		messages(sch.Root(), texts)
	}
	return fields.Redact(errs, func(detail string) bool { return texts[detail] })
}

// Warner returns a function that sends an error of an object of a version to the client as a warning, without sensitive
// values.
func Warner(ctx context.Context, v Version) func(*field.Error) {
	return func(err *field.Error) {
		for _, e := range Redact(v, field.ErrorList{err}) {
			request.Warn(ctx, e.Error())
		}
	}
}

// messages collects the messages of the rules of a schema.
func messages(n *objectschema.Node, texts map[string]bool) {
	if n == nil {
		return
	}
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Message != "" {
			texts[strings.TrimSpace(r.Message)] = true
			continue
		}
		texts["failed rule: "+strings.TrimSpace(r.Rule)] = true
	}
	for _, child := range n.Properties {
		messages(child, texts)
	}
	messages(n.Items, texts)
	messages(n.AdditionalProperties, texts)
	for _, child := range n.AllOf {
		messages(child, texts)
	}
}
