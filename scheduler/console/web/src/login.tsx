import { authorize, bytes } from './api'

/** Asks for a token, or for a name and a password, where the API wants one. */
export function Login({ done }: { done: () => void }) {
  const submit = (e: SubmitEvent) => {
    e.preventDefault()
    const form = new FormData(e.currentTarget as HTMLFormElement)
    const [token, name, password] = ['token', 'name', 'password'].map((k) => String(form.get(k) ?? '').trim())
    authorize(token ? `Bearer ${token}` : `Basic ${btoa(bytes(`${name}:${password}`))}`)
    done()
  }
  return (
    <form class="login" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>This cluster wants to know who you are. A token is kept until this tab is closed.</p>
      <label>
        Token
        <input name="token" type="password" autoComplete="off" autofocus />
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
