// Package secrecy is what a call has to do with the sensitive fields of its objects: who may read them, what the others
// see, what becomes of a mask that is written, and what errors and the audit log say.
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

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	objectschema "github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Subresource is the name of what a caller must be allowed to get to read sensitive fields. There is nothing else of
// that name.
const Subresource = "sensitive"

// Secrecy is what of a call's objects is sensitive, and whether the caller sees it.
type Secrecy struct {
	// Fields are sensitive; nil if none are.
	Fields *sensitive.Fields
	// Masked is true if the caller may not read them.
	Masked bool
}

// Of returns the secrecy of objects of a version. what names the request's object; its verb and subresource do not
// matter beyond that a list and a watch may be allowed as such. A nil authorizer allows everything.
func Of(
	ctx context.Context, v *catalog.Version, a authz.Authorizer, who user.Info, what request.Info,
) (Secrecy, error) {
	fields, err := v.SensitiveFields()
	if err != nil {
		return Secrecy{}, apierrors.NewInternalError(err)
	}
	if fields == nil || a == nil {
		return Secrecy{Fields: fields}, nil
	}
	return Secrecy{Fields: fields, Masked: !mayRead(ctx, a, who, what)}, nil
}

// mayRead asks for the verb get on the subresource, and for a list or a watch for that verb too.
func mayRead(ctx context.Context, a authz.Authorizer, who user.Info, what request.Info) bool {
	verbs := []string{"get"}
	if what.Verb == "list" || what.Verb == "watch" {
		verbs = append(verbs, what.Verb)
	}
	what.IsResource, what.Subresource = true, Subresource
	for _, what.Verb = range verbs {
		if d, _ := a.Authorize(ctx, who, &what); d.Allowed() {
			return true
		}
	}
	return false
}

// Roles decide about the resource of a call.
type Roles interface {
	Allows(verb, subresource string) bool
}

// Narrow masks the fields for a caller who may not read them by the roles of another time. ask is the request's verb.
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

// Part says which part of an object a write takes from the client.
type Part struct {
	// Kind and Name are those of the object, for errors.
	Kind schema.GroupKind
	Name string
	// Split is true if the status is written by an endpoint of its own, Status of that one.
	Split, Status bool
	// Applied is true of the fields that a server-side apply sends.
	Applied bool
}

// Unmask puts the stored values back into what a client has sent, in place; old is nil for a new object. What the
// endpoint does not take from the client may be anything.
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
	return apierrors.NewInvalid(p.Kind, p.Name, wrong)
}

// Form names the masked form of an entry in one version. All callers who see it masked share its bytes.
type Form struct{ Version *catalog.Version }

// Redact takes sensitive values out of what is wrong with an object of a version. The messages of rules stay:
// definitions may not make them of values.
func Redact(v *catalog.Version, errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 || v.Sensitive == nil {
		return errs
	}
	fields, err := v.SensitiveFields()
	if err != nil || fields == nil {
		return errs
	}
	said := map[string]bool{}
	if sch, err := v.Schema(); err == nil && sch != nil {
		messages(sch.Root(), said)
	}
	return fields.Redact(errs, func(detail string) bool { return said[detail] })
}

// messages notes what the rules of a schema say when they fail.
func messages(n *objectschema.Node, said map[string]bool) {
	if n == nil {
		return
	}
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Message != "" {
			said[strings.TrimSpace(r.Message)] = true
			continue
		}
		said["failed rule: "+strings.TrimSpace(r.Rule)] = true
	}
	for _, child := range n.Properties {
		messages(child, said)
	}
	messages(n.Items, said)
	messages(n.AdditionalProperties, said)
	for _, child := range n.AllOf {
		messages(child, said)
	}
}
