import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, bytes, refusal, signIn } from './api'

/** Asks for a token, or for a name and a password, where the API wants one. */
export function Login() {
  const [error, setError] = useState(refusal.peek())
  const first = useRef<HTMLInputElement>(null)
  useEffect(() => first.current?.focus(), [])
  const submit = async (e: SubmitEvent) => {
    e.preventDefault()
    const form = new FormData(e.currentTarget as HTMLFormElement)
    const [token, name, password] = ['token', 'name', 'password'].map((k) => String(form.get(k) ?? '').trim())
    setError('')
    try {
      await signIn(token ? `Bearer ${token}` : `Basic ${btoa(bytes(`${name}:${password}`))}`)
    } catch (e) {
      const unknown = e instanceof ApiError && e.status === 401
      setError(!unknown ? (e as Error).message : token ? 'This token is not known here.' : 'This name and password are not known here.')
    }
  }
  return (
    <form class="login" onSubmit={submit}>
      <h1>Sign in</h1>
      {error && (
        <p class="note bad" role="alert">
          {error}
        </p>
      )}
      <p>This cluster wants to know who you are. A token is kept until this tab is closed.</p>
      <label>
        Token
        <input name="token" type="password" autoComplete="off" ref={first} />
      </label>
      <p class="or">or</p>
      <label>
        Name
        <input name="name" autoComplete="username" />
      </label>
      <label>
        Password
        <input name="password" type="password" autoComplete="current-password" />
      </label>
      <button class="strong">Sign in</button>
    </form>
  )
}
