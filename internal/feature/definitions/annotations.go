package definitions

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/object"
)

// annotationsPath is the path of the annotations of a definition.
var annotationsPath = field.NewPath("metadata", "annotations")

// annotation returns an annotation of a definition.
func annotation(obj object.Object, name string) (text string, ok bool) {
	text, ok = object.Map(obj, "metadata", "annotations")[name].(string)
	return text, ok
}

// inForce returns the annotation that counts for an update: the new one, or the stored one if the update removes it. So
// an update never removes the annotation that would refuse it.
func inForce(obj, old object.Object, name string) (text string, ok bool) {
	if text, ok = annotation(obj, name); ok {
		return text, true
	}
	return annotation(old, name)
}

// checkAnnotations returns the errors in new values of the annotations.
func checkAnnotations(obj, old object.Object) (errs field.ErrorList) {
	changed := func(name string) (string, bool) {
		text, ok := annotation(obj, name)
		was, had := annotation(old, name)
		return text, ok && (!had || was != text)
	}
	if text, ok := changed(compat.Annotation); ok {
		if _, err := compat.ReadOwn(text); err != nil {
			errs = append(errs, field.Invalid(annotationsPath.Key(compat.Annotation), text, err.Error()))
		}
	}
	if text, ok := changed(ProtectAnnotation); ok && text != "true" && text != "false" {
		errs = append(errs, field.NotSupported(annotationsPath.Key(ProtectAnnotation), text, []string{"true", "false"}))
	}
	return errs
}

// policy returns the policy of an update. A stored annotation that cannot be read has no effect.
func (p *protection) policy(obj, old object.Object) *compat.Own {
	own := &compat.Own{}
	if text, ok := inForce(obj, old, compat.Annotation); ok {
		if read, err := compat.ReadOwn(text); err == nil {
			own = read
		}
	}
	if own.Mode == "" {
		own.Mode = p.settings.Mode
	}
	return own
}

// protects reports whether the objects of a definition are protected; old is the definition before an update, or nil.
func (p *protection) protects(obj, old object.Object) bool {
	text, _ := inForce(obj, old, ProtectAnnotation)
	if on, err := strconv.ParseBool(text); err == nil {
		return on
	}
	return p.settings.Protect
}
