package audit

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	webhookclient "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/audit/webhook"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// hookBackend posts events to a webhook, as the library's backend does, and reads no more than a Status of its answer.
type hookBackend struct {
	client *webhookclient.GenericWebhook
}

var _ audit.Backend = (*hookBackend)(nil)

func (w *WebhookOptions) open() (*hookBackend, error) {
	config, err := webhookclient.LoadKubeconfig(w.ConfigFile, w.Dial)
	if err != nil {
		return nil, err
	}
	config.Wrap(foreign.Document)
	client, err := webhookclient.NewGenericWebhook(audit.Scheme, audit.Codecs, config,
		[]schema.GroupVersion{auditv1.SchemeGroupVersion},
		webhookclient.DefaultRetryBackoffWithInitialDelay(w.InitialBackoff))
	if err != nil {
		return nil, err
	}
	client.ShouldRetry = func(err error) bool { return err != nil } // no error is a reason to lose events
	return &hookBackend{client: client}, nil
}

// Run implements audit.Backend.
func (*hookBackend) Run(<-chan struct{}) error { return nil }

// Shutdown implements audit.Backend.
func (*hookBackend) Shutdown() {}

// String implements audit.Backend. The name is a label of metrics.
func (*hookBackend) String() string { return webhook.PluginName }

// ProcessEvents implements audit.Backend.
func (b *hookBackend) ProcessEvents(events ...*auditapi.Event) bool {
	list := &auditapi.EventList{Items: make([]auditapi.Event, 0, len(events))}
	for _, e := range events {
		list.Items = append(list.Items, *e)
	}
	err := b.client.WithExponentialBackoff(context.Background(), func() rest.Result {
		return b.client.RestClient.Post().Body(list).Do(context.Background())
	}).Error()
	if err != nil {
		audit.HandlePluginError(b.String(), foreign.Error(err), events...)
	}
	return err == nil
}
