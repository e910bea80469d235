package redlock

// Driver is the driver behind New.
type Driver = driver

// The defaults of Config, and the driver without a Locker.
const (
	DefaultMasterTimeout = defaultMasterTimeout
	DefaultMaxTTL        = defaultMaxTTL
)

// NewDriver makes the driver behind New.
var NewDriver = newDriver
