package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
)

// The modes of a backend.
const (
	// ModeBatch collects events and delivers them in the background.
	ModeBatch = "batch"
	// ModeBlocking makes a request wait until its event has been delivered or has failed.
	ModeBlocking = "blocking"
	// ModeBlockingStrict also refuses a request if its first event cannot be delivered.
	ModeBlockingStrict = "blocking-strict"
)

// The formats of the log.
const (
	FormatJSON   = "json"
	FormatLegacy = "legacy" // one line of text for each event
)

// Options selects the events to record and their backends. It corresponds to kube-apiserver's flags --audit-*, with all
// defaults filled in.
type Options struct {
	PolicyFile string
	Log        LogOptions
	Webhook    WebhookOptions
}

// LogOptions configures the log file.
type LogOptions struct {
	Path       string // "-" is the standard output; "" disables the log
	Format     string
	Version    string // the group and version of events
	MaxAge     int    // days to keep rotated files, 0 for ever
	MaxBackups int    // number of rotated files to keep, 0 for all
	MaxSize    int    // megabytes at which the file is rotated, 0 for never
	Compress   bool   // compress rotated files with gzip
	Mode       string
	Batch      BatchConfig
	Truncate   TruncateOptions
}

// WebhookOptions configures the webhook.
type WebhookOptions struct {
	ConfigFile string // a kubeconfig; "" disables the webhook
	// Dial opens connections to the webhook; nil dials directly.
	Dial           func(ctx context.Context, network, address string) (net.Conn, error)
	Version        string
	InitialBackoff time.Duration
	Mode           string
	Batch          BatchConfig
	Truncate       TruncateOptions
}

// BatchConfig and TruncateConfig are the types of Kubernetes' libraries.
type (
	BatchConfig    = buffered.BatchConfig
	TruncateConfig = truncate.Config
)

// TruncateOptions limits the size of events for a backend.
type TruncateOptions struct {
	Enabled bool
	TruncateConfig
}

func (o *Options) enabled() bool {
	return o.PolicyFile != "" && (o.Log.Path != "" || o.Webhook.ConfigFile != "")
}

// Validate returns the errors in kube-apiserver's words. It skips options of disabled backends.
func (o *Options) Validate() error {
	var errs []error
	if l := &o.Log; l.Path != "" {
		errs = append(errs, validateBatch("log", l.Mode, &l.Batch), l.Truncate.validate("log"),
			validateVersion(l.Version))
		if formats := []string{FormatLegacy, FormatJSON}; !slices.Contains(formats, l.Format) {
			errs = append(errs, fmt.Errorf("invalid audit log format %s, allowed formats are %q", l.Format,
				strings.Join(formats, ",")))
		}
		for _, limit := range []struct {
			name  string
			value int
		}{{"maxage", l.MaxAge}, {"maxbackup", l.MaxBackups}, {"maxsize", l.MaxSize}} {
			if limit.value < 0 {
				errs = append(errs, fmt.Errorf("--audit-log-%s %d can't be a negative number", limit.name, limit.value))
			}
		}
	}
	if w := &o.Webhook; w.ConfigFile != "" {
		errs = append(errs, validateBatch("webhook", w.Mode, &w.Batch), w.Truncate.validate("webhook"),
			validateVersion(w.Version))
	}
	return errors.Join(errs...)
}

func validateBatch(backend, mode string, b *BatchConfig) error {
	modes := []string{ModeBatch, ModeBlocking, ModeBlockingStrict}
	switch {
	case !slices.Contains(modes, mode):
		return fmt.Errorf("invalid audit %s mode %s, allowed modes are %q", backend, mode, strings.Join(modes, ","))
	case mode != ModeBatch:
		return nil
	case b.BufferSize <= 0:
		return notPositive("batch", backend, "buffer size", b.BufferSize)
	case b.MaxBatchSize <= 0:
		return notPositive("batch", backend, "max batch size", b.MaxBatchSize)
	case b.ThrottleEnable && b.ThrottleQPS <= 0:
		return notPositive("batch", backend, "throttle QPS", b.ThrottleQPS)
	case b.ThrottleEnable && b.ThrottleBurst <= 0:
		return notPositive("batch", backend, "throttle burst", b.ThrottleBurst)
	}
	return nil
}

func (t *TruncateOptions) validate(backend string) error {
	switch {
	case t.MaxEventSize <= 0:
		return notPositive("truncate", backend, "max event size", t.MaxEventSize)
	case t.MaxBatchSize < t.MaxEventSize:
		return fmt.Errorf("invalid audit truncate %s max batch size %v, must be greater than max event size (%v)",
			backend, t.MaxBatchSize, t.MaxEventSize)
	}
	return nil
}

func notPositive(noun, backend, field string, value any) error {
	return fmt.Errorf("invalid audit %s %s %s %v, must be a positive number", noun, backend, field, value)
}

func validateVersion(version string) error {
	gv, err := schema.ParseGroupVersion(version)
	if err == nil && gv != auditv1.SchemeGroupVersion {
		err = fmt.Errorf("invalid group version, allowed versions are %q",
			[]schema.GroupVersion{auditv1.SchemeGroupVersion})
	}
	return err
}
