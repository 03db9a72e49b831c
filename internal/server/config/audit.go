package config

import (
	"cmp"
	"time"

	"github.com/bowsprit/bowsprit/internal/front/audit"
)

// Audit configures the audit log. Without a policy and a destination the server records no requests.
type Audit struct {
	// PolicyFile is a Policy of audit.k8s.io/v1, which selects the requests and the level of detail. Its rules may have
	// the field changes: JSONPatch.
	PolicyFile string
	// LogFile is the file for events, one a line; "-" is the standard output, "" means none.
	LogFile string
	// Log configures that file.
	Log AuditLog
	// WebhookConfigFile is a kubeconfig with the URL that receives events; "" means none.
	WebhookConfigFile string
	// Webhook configures the requests to that URL.
	Webhook AuditWebhook
}

// AuditLog configures the log of events.
type AuditLog struct {
	// Format is json, which is the default, or legacy, a line of text.
	Format string
	// Version is the group and version of events. Only audit.k8s.io/v1, the default, is valid.
	Version string
	// MaxAge bounds the days and MaxBackups the number of older files; the defaults are 366 and 100, a negative value
	// means no bound.
	MaxAge, MaxBackups int
	// MaxSize is the size of a file, in megabytes, at which the server begins another, 100 by default; a negative value
	// means no bound.
	MaxSize int
	// Compress has older files compressed with gzip.
	Compress bool
	// Mode is blocking, which is the default, blocking-strict or batch.
	Mode string
	// Batch is for the mode batch.
	Batch AuditBatch
	// Truncate bounds the size of events.
	Truncate AuditTruncate
}

// AuditWebhook configures the delivery of events.
type AuditWebhook struct {
	// Version is the group and version of events. Only audit.k8s.io/v1, the default, is valid.
	Version string
	// InitialBackoff is how long to wait before the first retry, 10 seconds if zero.
	InitialBackoff time.Duration
	// Mode is batch, which is the default, blocking or blocking-strict.
	Mode string
	// Batch is for the mode batch.
	Batch AuditBatch
	// Truncate bounds the size of events and batches.
	Truncate AuditTruncate
}

// AuditBatch configures the collection of events in the mode batch.
type AuditBatch struct {
	// BufferSize bounds the waiting events, 10,000 by default; the server drops and counts further ones.
	BufferSize int
	// MaxSize is maximum number of events in a batch; 400 for the webhook and 1 for the log if zero.
	MaxSize int
	// MaxWait is how long the first event of a batch waits for more; 30 seconds for the webhook if zero.
	MaxWait time.Duration
	// ThrottleEnable has batches held back that come too fast; nil is true for the webhook alone.
	ThrottleEnable *bool
	// ThrottleQPS is maximum number of batches per second; 10 for the webhook if zero.
	ThrottleQPS float32
	// ThrottleBurst is maximum number of batches in a burst; 15 for the webhook if zero.
	ThrottleBurst int
}

// AuditTruncate bounds the size of written and posted events.
type AuditTruncate struct {
	// Enabled removes the requests and responses from events that are too large.
	Enabled bool
	// MaxBatchSize and MaxEventSize are in bytes, 10 MiB and 100 KiB if zero.
	MaxBatchSize, MaxEventSize int64
}

// The defaults of audit logs and webhooks are kube-apiserver's.
const (
	auditVersion             = "audit.k8s.io/v1"
	defaultAuditMaxAge       = 366
	defaultAuditMaxBackups   = 100
	defaultAuditMaxSize      = 100
	defaultAuditBackoff      = 10 * time.Second
	defaultAuditMaxBatchSize = int64(10 << 20)
	defaultAuditMaxEventSize = int64(100 << 10)
)

// logBatch and webhookBatch return the defaults of batches.
func logBatch() AuditBatch {
	return AuditBatch{BufferSize: 10000, MaxSize: 1, ThrottleEnable: new(false)}
}

func webhookBatch() AuditBatch {
	return AuditBatch{
		BufferSize: 10000, MaxSize: 400, MaxWait: 30 * time.Second, ThrottleEnable: new(true), ThrottleQPS: 10,
		ThrottleBurst: 15,
	}
}

func (c *Audit) setDefaults() {
	l, w := &c.Log, &c.Webhook
	l.Format = cmp.Or(l.Format, audit.FormatJSON)
	l.Version = cmp.Or(l.Version, auditVersion)
	l.MaxAge = cmp.Or(l.MaxAge, defaultAuditMaxAge)
	l.MaxBackups = cmp.Or(l.MaxBackups, defaultAuditMaxBackups)
	l.MaxSize = cmp.Or(l.MaxSize, defaultAuditMaxSize)
	l.Mode = cmp.Or(l.Mode, audit.ModeBlocking)
	l.Batch.setDefaults(logBatch())
	l.Truncate.setDefaults()
	w.Version = cmp.Or(w.Version, auditVersion)
	w.InitialBackoff = cmp.Or(w.InitialBackoff, defaultAuditBackoff)
	w.Mode = cmp.Or(w.Mode, audit.ModeBatch)
	w.Batch.setDefaults(webhookBatch())
	w.Truncate.setDefaults()
}

func (c *AuditBatch) setDefaults(by AuditBatch) {
	c.BufferSize = cmp.Or(c.BufferSize, by.BufferSize)
	c.MaxSize = cmp.Or(c.MaxSize, by.MaxSize)
	c.MaxWait = cmp.Or(c.MaxWait, by.MaxWait)
	c.ThrottleEnable = cmp.Or(c.ThrottleEnable, by.ThrottleEnable)
	c.ThrottleQPS = cmp.Or(c.ThrottleQPS, by.ThrottleQPS)
	c.ThrottleBurst = cmp.Or(c.ThrottleBurst, by.ThrottleBurst)
}

func (c *AuditTruncate) setDefaults() {
	c.MaxBatchSize = cmp.Or(c.MaxBatchSize, defaultAuditMaxBatchSize)
	c.MaxEventSize = cmp.Or(c.MaxEventSize, defaultAuditMaxEventSize)
}

func (c *Audit) settings() []Setting {
	all := []Setting{
		{
			Name:  "audit-policy-file",
			Help:  "file with an audit Policy (audit.k8s.io/v1), which selects the recorded requests (default: none)",
			Value: &c.PolicyFile,
		},
		{
			Name:  "audit-log-path",
			Help:  "file for a line about each recorded event; '-' is the standard output (default: none)",
			Value: &c.LogFile,
		},
		{
			Name:  "audit-webhook-config-file",
			Help:  "kubeconfig of the webhook that receives recorded events (default: none)",
			Value: &c.WebhookConfigFile,
		},
	}
	return append(append(all, c.Log.settings()...), c.Webhook.settings()...)
}

func (c *AuditLog) settings() []Setting {
	all := []Setting{
		{
			Name: "audit-log-format", Help: "json or legacy", Value: &c.Format, Default: audit.FormatJSON,
			Form: Explicit,
		},
		{
			Name: "audit-log-version", Help: "group and version of the events in the log", Value: &c.Version,
			Default: auditVersion, Form: Explicit,
		},
		{
			Name: "audit-log-maxage", Help: "how many days older audit logs are kept, 0 for ever", Value: &c.MaxAge,
			Default: defaultAuditMaxAge, Form: Bounded,
		},
		{
			Name: "audit-log-maxbackup", Help: "how many older audit logs are kept, 0 for all", Value: &c.MaxBackups,
			Default: defaultAuditMaxBackups, Form: Bounded,
		},
		{
			Name: "audit-log-maxsize", Help: "megabytes at which another audit log is begun, 0 for never",
			Value: &c.MaxSize, Default: defaultAuditMaxSize, Form: Bounded,
		},
		{Name: "audit-log-compress", Help: "compress older audit logs", Value: &c.Compress},
	}
	all = append(all, modeSettings("log", &c.Mode, audit.ModeBlocking)...)
	return append(append(all, c.Batch.settings("log", logBatch())...), c.Truncate.settings("log")...)
}

func (c *AuditWebhook) settings() []Setting {
	all := []Setting{
		{
			Name: "audit-webhook-version", Help: "group and version of the posted events", Value: &c.Version,
			Default: auditVersion, Form: Explicit,
		},
		{
			Name: "audit-webhook-initial-backoff", Help: "how long to wait before the first retry of a post",
			Value: &c.InitialBackoff, Default: defaultAuditBackoff,
		},
	}
	all = append(all, modeSettings("webhook", &c.Mode, audit.ModeBatch)...)
	return append(append(all, c.Batch.settings("webhook", webhookBatch())...), c.Truncate.settings("webhook")...)
}

func modeSettings(backend string, mode *string, byDefault string) []Setting {
	return []Setting{{
		Name:  "audit-" + backend + "-mode",
		Help:  "batch: requests do not wait for it; blocking: they do; blocking-strict: they fail if it does",
		Value: mode, Default: byDefault, Form: Explicit,
	}}
}

func (c *AuditBatch) settings(backend string, by AuditBatch) []Setting {
	c.ThrottleEnable = cmp.Or(c.ThrottleEnable, by.ThrottleEnable)
	name := "audit-" + backend + "-batch-"
	return []Setting{
		{
			Name: name + "buffer-size", Help: "maximum number of waiting events; further events are dropped and counted",
			Value: &c.BufferSize, Default: by.BufferSize, Form: Explicit,
		},
		{
			Name: name + "max-size", Help: "maximum number of events in a batch", Value: &c.MaxSize,
			Default: by.MaxSize, Form: Explicit,
		},
		{
			Name: name + "max-wait", Help: "how long an event waits for a batch to fill", Value: &c.MaxWait,
			Default: by.MaxWait,
		},
		{
			Name: name + "throttle-enable", Help: "limit the rate of batches", Value: c.ThrottleEnable,
			Default: *by.ThrottleEnable,
		},
		{
			Name: name + "throttle-qps", Help: "maximum number of batches per second", Value: &c.ThrottleQPS,
			Default: by.ThrottleQPS, Form: Explicit,
		},
		{
			Name: name + "throttle-burst", Help: "maximum number of batches in a burst", Value: &c.ThrottleBurst,
			Default: by.ThrottleBurst, Form: Explicit,
		},
	}
}

func (c *AuditTruncate) settings(backend string) []Setting {
	name := "audit-" + backend + "-truncate-"
	return []Setting{
		{Name: name + "enabled", Help: "omit requests and responses from events that are too large", Value: &c.Enabled},
		{
			Name: name + "max-batch-size", Help: "maximum size of a batch in bytes; larger ones are divided",
			Value: &c.MaxBatchSize, Default: defaultAuditMaxBatchSize, Form: Explicit,
		},
		{
			Name: name + "max-event-size", Help: "maximum size of an event in bytes", Value: &c.MaxEventSize,
			Default: defaultAuditMaxEventSize, Form: Explicit,
		},
	}
}

func (c *Audit) validate(p *problems) {
	complete := *c
	complete.setDefaults()
	o := AuditOptions(&complete)
	if err := o.Validate(); err != nil {
		*p = append(*p, err)
	}
}

// AuditOptions returns the options of package audit.
func AuditOptions(c *Audit) audit.Options {
	l, w := &c.Log, &c.Webhook
	return audit.Options{
		PolicyFile: c.PolicyFile,
		Log: audit.LogOptions{
			Path: c.LogFile, Format: l.Format, Version: l.Version, MaxAge: max(l.MaxAge, 0),
			MaxBackups: max(l.MaxBackups, 0), MaxSize: max(l.MaxSize, 0), Compress: l.Compress, Mode: l.Mode,
			Batch: l.Batch.options(false), Truncate: l.Truncate.options(),
		},
		Webhook: audit.WebhookOptions{
			ConfigFile: c.WebhookConfigFile, Version: w.Version, InitialBackoff: w.InitialBackoff, Mode: w.Mode,
			Batch: w.Batch.options(true), Truncate: w.Truncate.options(),
		},
	}
}

// options returns the batches of package audit. async delivers batches in goroutines of their own.
func (c *AuditBatch) options(async bool) audit.BatchConfig {
	return audit.BatchConfig{
		BufferSize: c.BufferSize, MaxBatchSize: c.MaxSize, MaxBatchWait: c.MaxWait, ThrottleEnable: *c.ThrottleEnable,
		ThrottleQPS: c.ThrottleQPS, ThrottleBurst: c.ThrottleBurst, AsyncDelegate: async,
	}
}

func (c *AuditTruncate) options() audit.TruncateOptions {
	return audit.TruncateOptions{Enabled: c.Enabled, TruncateConfig: audit.TruncateConfig{
		MaxBatchSize: c.MaxBatchSize, MaxEventSize: c.MaxEventSize,
	}}
}
