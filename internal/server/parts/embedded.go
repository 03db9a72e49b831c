package parts

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// embeddedPlugins brings the plugins of the program that embeds the server.
func embeddedPlugins(plugins []config.AdmissionPlugin) part.Part {
	p := part.Part{Name: "embedded admission plugins"}
	for _, own := range plugins {
		p.Admission = append(p.Admission,
			part.Plugin{Name: own.Name, At: part.AboutKinds, New: func(*part.Host) (admit.Plugin, error) {
				return embedded{own}, nil
			}})
	}
	return p
}

// embedded puts a config.AdmissionPlugin into the chain.
type embedded struct{ plugin config.AdmissionPlugin }

var (
	_ admit.Mutator   = embedded{}
	_ admit.Validator = embedded{}
)

func (e embedded) Name() string { return e.plugin.Name }

func (e embedded) Mutate(ctx context.Context, a *admit.Attributes) error {
	if e.plugin.Mutate == nil {
		return nil
	}
	r := config.NewAdmissionRequest(a, runtime.DeepCopyJSON(a.Object))
	if err := e.plugin.Mutate(ctx, r); err != nil {
		return refused(a, err)
	}
	if r.Object != nil && !reflect.DeepEqual(r.Object.Object, a.Object) {
		a.Replace(r.Object.Object)
	}
	return nil
}

func (e embedded) Validate(ctx context.Context, a *admit.Attributes) error {
	if e.plugin.Validate == nil {
		return nil
	}
	return refused(a, e.plugin.Validate(ctx, config.NewAdmissionRequest(a, a.Object)))
}

// refused turns a plugin's error into an error for the client.
func refused(a *admit.Attributes, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return admit.Forbidden(a, err)
}
