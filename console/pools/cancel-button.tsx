import { call } from '../api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';

interface CancelProps {
  /** The id of the chat, a UUID; in that of a job the number of the attempt follows from the second one on. */
  id: string;
  onDone(): void;
  onError(error: unknown): void;
}

/** Cancels a chat that has not ended. */
export function CancelButton({ id, onDone, onError }: CancelProps) {
  const cancel = () => call(`/admin/chat/${id.slice(0, 36)}`, { method: 'DELETE' });
  return (
    <ConfirmButton
      label="Cancel chat"
      of={id}
      question="Cancel this chat? Its user gets no answer."
      onConfirm={() => cancel().then(onDone, onError)}
    />
  );
}
